package engine_test

import (
	"encoding/binary"
	"strings"
	"testing"
)

// smallMovie returns an MP4 with a track of ten samples "0123456789", one in each second and in each chunk.
func smallMovie() string {
	box := func(name string, content ...string) string {
		text := strings.Join(content, "")
		return string(binary.BigEndian.AppendUint32(nil, uint32(len(text)+8))) + name + text
	}
	u32 := func(list ...uint32) (s string) {
		for _, n := range list {
			s += string(binary.BigEndian.AppendUint32(nil, n))
		}
		return s
	}
	head := box("ftyp", "isom")
	movie := func(at uint32) string {
		var places, sizes []uint32
		for i := range uint32(10) {
			places, sizes = append(places, at+i), append(sizes, 1)
		}
		return box("moov", box("mvhd", u32(0, 0, 0, 1, 10), strings.Repeat("r", 80)), box("trak", box("tkhd", u32(0, 0, 0, 1, 0, 10), strings.Repeat("r", 60)),
			box("mdia", box("mdhd", u32(0, 0, 0, 1, 10, 0)), box("minf", box("stbl", box("stts", u32(0, 1, 10, 1)), box("stss", u32(0, 2, 1, 5)), box("stsc", u32(0, 1, 1, 1, 1)),
				box("stsz", u32(0, 0, 10), u32(sizes...)), box("stco", u32(0, 10), u32(places...)))))))
	}
	return head + movie(uint32(len(head)+len(movie(0))+8)) + box("mdat", "0123456789")
}

// A part of a file is served as if it were the file, and the file itself where nothing is cut.
func TestMP4(t *testing.T) {
	file := smallMovie()
	s := serve(t, map[string]string{"html/a.mp4": file, "html/bad.mp4": "no movie", "html/d/index.html": "index", "html/ssi.html": `<!--#include virtual="/a.mp4?start=8" -->`,
		"nginx.conf": `events {} http { types { video/mp4 mp4; text/html html; } server {
			location / { mp4; ssi on; }
			location /small/ { alias html/; mp4; mp4_max_buffer_size 100; }
			location /key/ { alias html/; mp4; mp4_start_key_frame on; }
		} }`})
	for target, want := range map[string]string{
		"/a.mp4": "0123456789", "/a.mp4?start=0": "0123456789", "/a.mp4?start=7": "789", "/a.mp4?start=7.9": "789", "/a.mp4?start=2&end=4": "23",
		"/a.mp4?end=4": "0123", "/key/a.mp4?start=7": "456789", "/ssi.html": "89",
	} {
		got := s.get(target)
		_, media, _ := strings.Cut(got.body, "mdat")
		equal(t, target, media, want)
		if whole := want == "0123456789"; whole != (got.body == file) {
			t.Errorf("%s: the whole file is %v", target, !whole)
		}
	}
	for target, want := range map[string]int{"/small/a.mp4?start=1": 500, "/small/a.mp4": 200, "/bad.mp4?start=1": 500, "/bad.mp4": 200, "/a.mp4?start=10": 500, "/a.mp4?start=x": 200, "/none.mp4": 404, "/d/": 200} {
		equal(t, target, s.get(target).StatusCode, want)
	}
	equal(t, "a POST", s.request("POST", "/a.mp4").StatusCode, 405)
	part := s.get("/a.mp4?start=5")
	head := s.request("HEAD", "/a.mp4?start=5")
	equal(t, "HEAD", head.ContentLength, int64(len(part.body)))
	equal(t, "a range", s.get("/a.mp4?start=5", "Range: bytes=-2").body, "89")
	equal(t, "several ranges", s.get("/a.mp4?start=5", "Range: bytes=0-1,3-4").body, part.body)
	if s.get("/a.mp4").Header.Get("ETag") == part.Header.Get("ETag") {
		t.Error("a part has the whole file's ETag")
	}
	if !strings.Contains(s.errors.String(), "box moov is too large") {
		t.Error(s.errors.String())
	}
}
