package e2e

import "fmt"

// hashConf is a group behind ip_hash.
func hashConf(servers string) string {
	return httpBlock(`upstream group { ip_hash; ` + servers + ` } server { listen {{LISTEN}}; location / { proxy_pass http://group; } }`)
}

// hashSteps ask from many addresses of 127.0.0.0/8: each must go to the same
// upstream behind either server. The hash looks at the first three bytes.
func hashSteps() []step {
	var steps []step
	for i := range 100 {
		address := fmt.Sprintf("127.%d.%d.%d", i*7%256, i*131%256, 1+i%250)
		steps = append(steps, step{name: "from " + address, local: address, raw: get("/x")})
	}
	return steps
}
