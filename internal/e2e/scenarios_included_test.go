package e2e

const charsetConf = `http { access_log off; types { text/html html; text/css css; }
charset_map B A { 58 59; } charset_map latin utf-8 { E4 C3A4; 80 E282AC; }
server { listen {{LISTEN}}; root html;
  location / { charset A; source_charset B; }
  location /utf/ { charset utf-8; source_charset latin; alias html/; }
  location /latin/ { charset latin; source_charset utf-8; charset_types *; alias html/; }
  location /var/ { charset $arg_to; source_charset $arg_from; alias html/; }
  location /moved { charset A; source_charset B; error_page 404 =301 /x.html; return 404; }
  location /up/ { charset A; proxy_pass http://{{UP1}}/; }
  location /override/ { charset A; source_charset B; override_charset on; proxy_pass http://{{UP1}}/; }
  location /ranges/ { max_ranges 1; alias html/; }
  location /noranges/ { max_ranges 0; alias html/; }
} }
`

var charsetFiles = map[string]string{"html/x.html": "aXYX", "html/x.css": "X\xc3\xa4\xe2\x82\xac\xd0\xb9", "html/latin.html": "\xe4\x80\xff"}

var charsetSteps = append(gets("/x.html", "/x.css", "/utf/latin.html", "/latin/x.css", "/latin/x.html", "/var/x.html?from=b&to=a", "/var/x.html?from=c&to=C",
	"/var/x.html?from=c&to=a", "/moved", "/up/html", "/override/html", "/missing"),
	step{name: "HEAD", raw: request("HEAD", "/utf/latin.html", ""), methods: []string{"HEAD"}},
	step{name: "range", raw: get("/x.html", "Range: bytes=1-2")},
	step{name: "range of UTF-8", raw: get("/utf/latin.html", "Range: bytes=1-2")},
	step{name: "two ranges", raw: get("/ranges/x.html", "Range: bytes=0-0,2-2")},
	step{name: "one range", raw: get("/ranges/x.html", "Range: bytes=0-0")},
	step{name: "no range", raw: get("/noranges/x.html", "Range: bytes=0-0")},
)
