package engine

import "time"

// streamPrereadModule reads the ClientHello before the content (ngx_stream_ssl_preread_module.c), and the PROXY protocol's header.
var streamPrereadModule = module{
	directives: []directive{
		{name: "preread_buffer_size", compile: setSize(streamPrereadSlot, func(s *streamPrereadSettings) *int64 { return &s.buffer })},
		{name: "preread_timeout", compile: setDuration(streamPrereadSlot, func(s *streamPrereadSettings) *time.Duration { return &s.timeout })},
		{name: "proxy_protocol_timeout", compile: setDuration(streamPrereadSlot, func(s *streamPrereadSettings) *time.Duration { return &s.headerTimeout })},
		{name: "ssl_preread", compile: setFlag(streamPrereadSlot, func(s *streamPrereadSettings) *bool { return &s.on })},
	},
}

var streamPrereadSlot = newSlot(streamPrereadSettings{buffer: 16 << 10, timeout: 30 * time.Second, headerTimeout: 30 * time.Second})

type streamPrereadSettings struct {
	on                     bool
	buffer                 int64
	timeout, headerTimeout time.Duration
}
