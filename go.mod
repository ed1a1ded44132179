module github.com/culvert-go/culvert

go 1.26.0
