module github.com/culvert-go/culvert/internal/bench

go 1.26.0

require github.com/culvert-go/culvert v0.0.0

replace github.com/culvert-go/culvert => ../..
