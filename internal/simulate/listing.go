package simulate

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// respondToListing responds to the list that a filter requests for a watch, and reports whether the connection is kept.
func (t *target) respondToListing(c *Conn, in *bufio.Reader, req *http.Request, token uint32) bool {
	plan := t.world.exchanges[token]
	attempt := t.world.journal.lastSeen(token)
	if plan == nil || !plan.Resumed || attempt < 0 {
		t.world.journal.Break("listing", "%s got a request for a list that belongs to no watch: %s", t.plan.Addr, req.RequestURI)
		return false
	}
	k := plan.response(attempt).Kube
	watch := k.content(plan.stream(attempt))
	query := req.URL.Query()
	version := resumedVersion
	more := query.Get("continue")
	if more == "" {
		version, _ = strconv.Atoi(query.Get("resourceVersion"))
	} else {
		version, _ = strconv.Atoi(strings.TrimPrefix(more, "behind-"))
	}
	if more == "" && query.Get("resourceVersionMatch") != "Exact" || version < resumedVersion || version >= resumedVersion+1+len(watch.events) || req.Method != http.MethodGet {
		t.world.journal.Break("listing", "%s got the request %s %s", t.plan.Addr, req.Method, req.RequestURI)
	}
	t.note(token, "lists %s: %s", req.RequestURI, k.Listing)
	t.world.journal.manners.Add("target: the list of a resumed watch, "+k.Listing.String(), 1)
	list := kubeContent{verb: KubeList, proto: k.Proto, stream: watch.stream, events: watch.at(version)}
	status := http.StatusOK
	switch k.Listing {
	case ListingPaged:
		if half := len(list.events) / 2; more == "" {
			list.events, list.more = list.events[:half], fmt.Sprint("behind-", version)
		} else {
			list.events = list.events[half:]
		}
	case ListingSlow:
		t.world.sleep(listingPause)
	case ListingGone:
		status = http.StatusGone
	case ListingNever:
		select {
		case <-t.world.ended:
		case <-c.closed:
		case <-heard(in):
		}
		return false
	}
	content := list.bytes()
	media := kubeJSON
	if k.Proto {
		media = kubeProto
	}
	_, err := fmt.Fprintf(c, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n", status, http.StatusText(status), media, len(content))
	if k.Listing == ListingShort {
		_, _ = c.Write(content[:len(content)/2])
		return false
	}
	if err == nil {
		_, err = c.Write(content)
	}
	if err == nil && status == http.StatusOK && list.more == "" {
		t.world.journal.noteListed(token)
	}
	return err == nil
}

// heard returns a channel that is closed when a connection ends, or more is received over it.
func heard(in io.Reader) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = in.Read(make([]byte, 1))
	}()
	return done
}
