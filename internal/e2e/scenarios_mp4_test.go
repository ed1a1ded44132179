package e2e

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// Parts of an MP4, by time.
const mp4Conf = `http { access_log off; types { video/mp4 mp4; }
server { listen {{LISTEN}}; root {{DIR}}/html;
  location / { mp4; }
  location /key/ { alias {{DIR}}/html/; mp4; mp4_start_key_frame on; }
  location /small/ { alias {{DIR}}/html/; mp4; mp4_buffer_size 100; mp4_max_buffer_size 200; }
}
}
`

var mp4Files = map[string]string{"html/a.mp4": movie(), "html/bad.mp4": "no movie at all", "html/d/index.html": "index"}

var mp4Steps = append(mp4Gets("/a.mp4", "", "?start=0", "?start=2", "?start=2.34567", "?start=.5", "?start=x", "?start=-1", "?start=9.9", "?start=10", "?start=11", "?end=4", "?end=20", "?start=0&end=3.3", "?start=2.5&end=6.4", "?start=1&end=9", "?start=3&end=2", "?start=2&end=x"),
	append(gets("/bad.mp4", "/bad.mp4?start=1", "/none.mp4", "/d/", "/small/a.mp4?start=1", "/small/a.mp4"),
		step{name: "HEAD", raw: request("HEAD", "/a.mp4?start=3", ""), methods: []string{"HEAD"}},
		step{name: "POST", raw: request("POST", "/a.mp4?start=3", "")},
		step{name: "a range", raw: get("/a.mp4?start=3", "Range: bytes=-5")},
		step{name: "two ranges", raw: get("/a.mp4?start=3", "Range: bytes=0-1,3-4")},
	)...)

// mp4Gets are the queries with and without the start at key frames.
func mp4Gets(name string, queries ...string) (steps []step) {
	for _, query := range queries {
		steps = append(steps, gets(name+query, "/key"+name+query)...)
	}
	return steps
}

// movie returns an MP4 with a track of thirty samples, three in a second, and mostly two in a chunk.
func movie() string {
	box := func(name string, content ...string) string {
		text := strings.Join(content, "")
		return string(binary.BigEndian.AppendUint32(nil, uint32(len(text)+8))) + name + text
	}
	numbers := func(list ...uint32) (s string) {
		for _, n := range list {
			s += string(binary.BigEndian.AppendUint32(nil, n))
		}
		return s
	}
	var media string
	var places, sizes []uint32
	for i := range 30 {
		if i%2 == 0 || i == 29 {
			places = append(places, uint32(len(media)))
		}
		sample := fmt.Sprintf("<%d%s>", i, strings.Repeat(".", i%5))
		media, sizes = media+sample, append(sizes, uint32(len(sample)))
	}
	head := box("ftyp", "isom")
	moov := func(at uint32) string {
		moved := make([]uint32, len(places))
		for i := range places {
			moved[i] = places[i] + at
		}
		return box("moov", box("mvhd", numbers(0, 0, 0, 1000, 10000), strings.Repeat("r", 80)), box("trak", box("tkhd", numbers(0, 0, 0, 1, 0, 10000), strings.Repeat("r", 60)),
			box("mdia", box("mdhd", numbers(0, 0, 0, 30, 300, 0)), box("hdlr", "handler"), box("minf", box("vmhd", "video"), box("dinf", "data"),
				box("stbl", box("stsd", "descriptions of samples"), box("stts", numbers(0, 1, 30, 10)), box("stss", numbers(0, 4, 1, 8, 15, 22)), box("ctts", numbers(0, 2, 11, 3, 19, 4)),
					box("stsc", numbers(0, 2, 1, 2, 1, 15, 1, 1)), box("stsz", numbers(0, 0, 30), numbers(sizes...)), box("stco", numbers(0, uint32(len(places))), numbers(moved...)))))))
	}
	return head + moov(uint32(len(head)+len(moov(0))+8)) + box("mdat", media)
}
