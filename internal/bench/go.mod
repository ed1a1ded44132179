module github.com/culvert-go/culvert/internal/bench

go 1.26.0

require github.com/culvert-go/culvert v0.0.0

require (
	github.com/klauspost/compress v1.20.3 // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/text v0.43.0 // indirect
)

replace github.com/culvert-go/culvert => ../..
