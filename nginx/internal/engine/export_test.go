package engine

// Directives are the names that the engine compiles.
func Directives() []string {
	names := []string{"include", "hash", "ip_hash", "keepalive", "least_conn", "random"} // of the parser and of upstream
	for name := range directives() {
		names = append(names, name)
	}
	return names
}
