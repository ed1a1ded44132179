module github.com/culvert-go/culvert/nginx

go 1.26.0

require (
	github.com/culvert-go/culvert v0.1.0
	github.com/dlclark/regexp2/v2 v2.13.0
	github.com/gorilla/websocket v1.5.3
	github.com/nginxinc/nginx-go-crossplane v0.4.89
	github.com/quic-go/quic-go v0.65.0
	github.com/tg123/go-htpasswd v1.2.5
	golang.org/x/crypto v0.58.0
	golang.org/x/net v0.62.0
)

require (
	github.com/GehirnInc/crypt v0.0.0-20230320061759-8cc1b52080c5 // indirect
	github.com/jstemmer/go-junit-report v1.0.0 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/quic-go/qpack v0.6.0 // indirect
	golang.org/x/mod v0.41.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
	golang.org/x/tools v0.51.0 // indirect
)
