module github.com/culvert-go/culvert/examples

go 1.26.0

require (
	github.com/culvert-go/culvert v0.0.0
	github.com/gorilla/websocket v1.5.3
	github.com/nginxinc/nginx-go-crossplane v0.4.89
	go.yaml.in/yaml/v3 v3.0.6
)

require (
	github.com/jstemmer/go-junit-report v1.0.0 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
	golang.org/x/mod v0.41.0 // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/text v0.43.0 // indirect
	golang.org/x/tools v0.51.0 // indirect
)

replace github.com/culvert-go/culvert => ../
