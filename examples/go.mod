module github.com/culvert-go/culvert/examples

go 1.26.0

require (
	github.com/culvert-go/culvert v0.0.0
	github.com/gorilla/websocket v1.5.3
	github.com/nginxinc/nginx-go-crossplane v0.4.89
)

require (
	github.com/jstemmer/go-junit-report v1.0.0 // indirect
	golang.org/x/mod v0.24.0 // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sync v0.13.0 // indirect
	golang.org/x/tools v0.32.0 // indirect
)

replace github.com/culvert-go/culvert => ../
