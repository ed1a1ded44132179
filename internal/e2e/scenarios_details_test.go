package e2e

// Details of single directives, each of which nginx's own tests look at.
const detailsConf = `http { access_log off; default_type text/plain;
server { listen {{LISTEN}}; root html;
  location /a { rewrite ^ /b; break; proxy_pass http://{{UP1}}/c; }
  location /f { break; proxy_pass http://{{UP1}}/c; }
  location /405 { error_page 405 /none; return 405; }
  location /none { return 204; }
  location /vars/ { alias html/; try_files $uri $uri/ =404; }
  location /constant/ { alias html; try_files /page.html =404; }
  location ~ ^/pattern/ { alias html; try_files /sub$uri /page.html =404; }
  location ~ ^/dir/ { alias html/sub/; try_files / =404; }
  location /quiet/ { log_not_found off; } } }
`

var detailsSteps = gets("/a/x", "/f/x", "/405", "/none", "/vars/page.html", "/vars/none", "/vars/sub/index.html", "/constant/x", "/constant/", "/pattern/x",
	"/pattern/page.html", "/dir/x", "/quiet/none")
