// Package nginx runs an nginx.conf inside any Go program: it parses the configuration, compiles it into handlers over
// culvert's packages, binds its listeners, and reloads it without losing a request.
//
//	s, err := nginx.Load("/etc/nginx/nginx.conf")
//	if err != nil {
//		return err // a *conf.Error names the file, the line and the directive
//	}
//	if err := s.Start(); err != nil {
//		return err
//	}
//	defer s.Close()
//
// A program that binds by itself takes the handlers instead, which follow a Reload, as do the certificates:
//
//	for _, l := range s.Listeners() {
//		go l.NewServer().Serve(bind(l.Network, l.Address))
//	}
//
// A handler serves in any http.Server or http.ServeMux as well, without what the configuration says of connections, and
// without its pages and its log for malformed requests.
//
// A program may serve locations by its own handlers (culvert_handler), and add directives and variables: see Options.Handlers,
// Directive and Options.Variables.
//
// Package command is nginx's command line over it. Package conf reports of each directive whether culvert implements it,
// can do without it, or refuses it; a configuration with a directive that is refused does not load, since ignoring it
// would change what the configuration means.
package nginx
