package e2e

// Chunked bodies that no upstream gets, well-formed and not.
const chunksConf = `http { access_log off; default_type text/plain;
server { listen {{LISTEN}}; root html;
  location /text { return 200 text; }
  location /moved { return 301 /x; }
  location /gone { return 410; }
  location / { }
}
}
`

const chunkedHead = " HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"

var chunksSteps = []step{
	{name: "text", raw: "GET /text" + chunkedHead + "5\r\nhello\r\n0\r\n\r\nGET /text?2" + chunkedHead + "0\r\n\r\n", methods: []string{"GET", "GET"}},
	{name: "no chunk", raw: "GET /text" + chunkedHead + "zz\r\n"},
	{name: "a chunk that is too long", raw: "GET /text" + chunkedHead + "4\r\nSEE-THIS\r\n0\r\n\r\n"},
	{name: "a negative length", raw: "POST /text" + chunkedHead + "5\r\nhello\r\n-1\r\n"},
	{name: "a redirect", raw: "GET /moved" + chunkedHead + "zz\r\n"},
	{name: "an error", raw: "GET /gone" + chunkedHead + "zz\r\n"},
	{name: "a file", raw: "GET /page.html" + chunkedHead + "zz\r\n"},
	{name: "a file with a body", raw: "GET /page.html" + chunkedHead + "5\r\nhello\r\n0\r\n\r\n"},
}
