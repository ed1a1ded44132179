package view_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/watchcodec/view"
)

// A client that accepts nothing of a response that is not a watch holds up neither handler nor
// connection.
func TestResponseThatIsNotAccepted(t *testing.T) {
	object := strings.Replace(collectionPath, "things", "namespaces/n/things/", 1)
	for name, request := range map[string]string{
		"406":           collectionPath + " HTTP/1.1\r\nAccept: text/html",
		"list":          collectionPath + " HTTP/1.1",
		"object":        object + "a HTTP/1.1",
		"404":           object + "none HTTP/1.1",
		"watch":         collectionPath + "?watch=1 HTTP/1.1",
		"400 to watch":  collectionPath + "?watch=1&resourceVersion=no HTTP/1.1",
		"422 to watch":  collectionPath + "?watch=1&sendInitialEvents=true HTTP/1.1",
		"ERROR event":   collectionPath + "?watch=1&resourceVersion=1 HTTP/1.1",
		"400 to a list": collectionPath + "?resourceVersion=no HTTP/1.1",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				leaktest.Check(t)
				server, p := aThing(t)
				views := newViews(t, view.Options{}, p)
				defer views.Close()
				var served http.Handler = views.Filter(server)
				wiretest.NotAccepted(t, served, "GET "+request+"\r\nHost: a\r\n\r\n")
			})
		})
	}
}
