package engine

// Directives are the names that the engine compiles.
func Directives() []string {
	names := []string{"include", "ip_hash"} // of the parser and of upstream
	for name := range directives() {
		names = append(names, name)
	}
	return names
}
