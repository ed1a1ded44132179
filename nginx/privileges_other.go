//go:build !unix

package nginx

// DropPrivileges does nothing on this system, where directive user has no effect.
func (s *Server) DropPrivileges() error { return nil }
