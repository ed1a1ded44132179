module github.com/culvert-go/culvert/internal/bench

go 1.26.0

require github.com/culvert-go/culvert v0.0.0

require golang.org/x/net v0.62.0 // indirect

replace github.com/culvert-go/culvert => ../..
