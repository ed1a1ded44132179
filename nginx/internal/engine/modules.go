package engine

// modules lists the modules. Within each phase of a request they are called in this order, which
// is nginx's; the filters of bodies wrap each other, the first one being next to the content.
func modules() []*module {
	return []*module{
		// of the process and of http
		&mainModule, &errorLogModule, &variablesModule, &resolverModule, &upstreamModule, &earlyHintsModule,
		// when a request has been received
		&listenModule, &http3Module, &serverModule, &realIPModule, &headerFieldsModule, &locationModule, &sslModule,
		// when its location has been found
		&clientBodyModule, &acmeModule, &rewriteModule, &refererModule, &browserModule, &secureLinkModule,
		// before access to its location
		&limitReqModule, &limitConnModule,
		// access
		&accessModule, &authBasicModule, &authRequestModule,
		// before content
		&tryFilesModule, &mirrorModule, &storeModule,
		// content
		&culvertHandlerModule, &proxyModule, &grpcModule, &fastCGIModule, &scgiModule, &uwsgiModule, &memcachedModule, &tunnelModule, &stubStatusModule, &culvertStatusModule, &emptyGIFModule, &flvModule, &mp4Module, &randomIndexModule, &indexModule, &autoindexModule, &davModule, &gzipStaticModule, &staticModule,
		&rootModule, &linksModule, &typesModule,
		&errorPageModule, &redirectModule, &msieModule,
		// filters of the response
		&sliceModule, &gunzipModule, &subModule, &charsetModule, &ssiModule, &additionModule, &gzipModule, &gzipVaryModule, &forceRangesModule, &limitRateModule,
		&serverHeaderModule, &expiresModule, &culvertExpireErrorsModule, &useridModule, &addTrailerModule, &addHeaderModule, &chunkedModule, &keepaliveModule,
		&logModule, &postActionModule,
	}
}
