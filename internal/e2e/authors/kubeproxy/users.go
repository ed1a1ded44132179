package main

import (
	"context"
	"crypto/sha256"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/watchcodec"
)

// userKey is that of a request's user in its context.
type userKey struct{}

func userOf(ctx context.Context) *User {
	u, _ := ctx.Value(userKey{}).(*User)
	return u
}

// authenticate returns a filter that serves the users with their tokens only.
func authenticate(users map[[sha256.Size]byte]*User) culvert.Filter {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var u *User
			if lines := r.Header["Authorization"]; len(lines) == 1 {
				if token, ok := strings.CutPrefix(lines[0], "Bearer "); ok {
					u = users[sha256.Sum256([]byte(token))]
				}
			}
			if u == nil {
				watchcodec.WriteStatus(w, watchcodec.NewFailure(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "a token of this gateway is required"))
				return
			}
			if result := filters.ResultFrom(r.Context()); result != nil {
				result.User = u.Name // for the log
			}
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userKey{}, u)))
		})
	}
}

// impersonate returns a proxy.Options.Rewrite that sends requests with the gateway's token, in the name of the user.
func impersonate(token string) func(*proxy.Outbound) {
	return func(o *proxy.Outbound) {
		u := userOf(o.In.Context())
		if u == nil {
			o.Fail(&culvert.Error{Kind: culvert.Forbidden})
			return
		}
		o.Out.Host = ""
		for name := range o.Out.Header { // what a client may claim
			if strings.HasPrefix(name, "Impersonate-") || strings.HasPrefix(name, "X-Remote-") {
				o.Out.Header.Del(name)
			}
		}
		o.Out.Header.Set("Authorization", "Bearer "+token)
		o.Out.Header.Set("Impersonate-User", u.Name)
		for _, group := range u.Groups {
			o.Out.Header.Add("Impersonate-Group", group)
		}
	}
}

// filtered are the resources of which users see those of their teams.
func filtered(req *watchcodec.Request) bool {
	return req.APIGroup == "" && (req.Resource == "pods" || req.Resource == "configmaps")
}

// visible is watchcodec.FilterOptions.Rewriter.
func visible(r *http.Request, req watchcodec.Request) watchcodec.Rewriter {
	if !filtered(&req) {
		return nil
	}
	u := userOf(r.Context())
	return func(o *watchcodec.Object) (bool, error) {
		team, ok := o.Label("team")
		return ok && u != nil && slices.Contains(u.Teams, string(team)), nil
	}
}
