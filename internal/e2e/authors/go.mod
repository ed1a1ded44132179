module github.com/culvert-go/culvert/internal/e2e/authors

go 1.26.0

require (
	github.com/culvert-go/culvert v0.1.0
	github.com/gorilla/websocket v1.5.3
	github.com/redis/go-redis/v9 v9.23.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/go-logr/logr v1.4.4 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	go.yaml.in/yaml/v2 v2.4.4 // indirect
	go.yaml.in/yaml/v3 v3.0.6 // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
)

replace (
	github.com/culvert-go/culvert => ../../..
	github.com/culvert-go/culvert/examples => ../../../examples
	github.com/culvert-go/culvert/nginx => ../../../nginx
)
