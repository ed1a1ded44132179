package proxy_test

import _ "github.com/culvert-go/culvert/internal/wiretest/ownserver" // the tests run behind both servers
