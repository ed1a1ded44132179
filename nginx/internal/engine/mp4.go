package engine

import (
	"errors"
	"net/http"
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/mp4"
	"github.com/culvert-go/culvert/nginx/internal/engine/static"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// mp4Module serves parts of MP4 files, between the times that the arguments start and end name (ngx_http_mp4_module.c).
var mp4Module = module{
	directives: []directive{
		{name: "mp4", compile: func(_ *compiler, l *level, _ *conf.Directive) error {
			*mp4Slot.edit(l) = true
			return nil
		}},
		{name: "mp4_max_buffer_size", compile: setSize(mp4SettingsSlot, func(s *mp4Settings) *int64 { return &s.maxMovie })},
		{name: "mp4_start_key_frame", compile: setFlag(mp4SettingsSlot, func(s *mp4Settings) *bool { return &s.keyFrame })},
	},
	active: func(l *level) bool { return *mp4Slot.of(l) },
	hooks:  hooks{content: serveMP4},
}

var (
	mp4Slot         = newLocalSlot[bool]()
	mp4SettingsSlot = newSlot(mp4Settings{maxMovie: 10 << 20})
)

type mp4Settings struct {
	maxMovie int64 // mp4_max_buffer_size
	keyFrame bool
}

func serveMP4(x *exchange, w http.ResponseWriter) (status int, done bool) {
	return serveFilm(x, w, func(name string, c *static.Content) int {
		o, cut := mp4Options(x)
		if !cut {
			return 0
		}
		c.MaxRanges = 1
		part, err := mp4.Cut(c.File, c.Size, o)
		switch {
		case errors.Is(err, mp4.ErrWhole):
		case err != nil:
			x.logError("mp4: " + err.Error() + " in \"" + name + "\"")
			return http.StatusInternalServerError
		default:
			c.Prefix, c.Skip, c.Size = string(part.Header), part.From, part.Size()
		}
		return 0
	})
}

// mp4Options returns what the request's arguments name, and whether they name a part.
func mp4Options(x *exchange) (o mp4.Options, cut bool) {
	s := mp4SettingsSlot.of(x.level)
	o = mp4.Options{KeyFrame: s.keyFrame, MaxMovie: s.maxMovie}
	text, _ := vars.Argument(x.Args, "start")
	o.Start, cut = milliseconds(text)
	text, _ = vars.Argument(x.Args, "end")
	if end, ok := milliseconds(text); ok && end > 0 {
		cut = true
		if end > o.Start {
			o.Length = end - o.Start
		}
	}
	return o, cut
}

// milliseconds parses seconds with a fraction, of which three digits count.
func milliseconds(text string) (ms uint64, ok bool) {
	whole, fraction, _ := strings.Cut(text, ".")
	if whole+fraction == "" {
		return 0, text != "" // a dot alone is 0 to nginx
	}
	if strings.Trim(whole+fraction, "0123456789") != "" || len(strings.TrimLeft(whole, "0")) > 15 {
		return 0, false
	}
	for _, digit := range whole + (fraction + "000")[:3] {
		ms = ms*10 + uint64(digit-'0')
	}
	return ms, true
}
