package wiretest

import (
	"net"
	"time"
)

// Hooked is a connection that calls a function in its methods, with the method's name: behind Read and Close, before the
// others. The function may panic, as a connection of an embedder's may.
type Hooked struct {
	net.Conn
	Called func(method string)
}

// Read implements net.Conn.
func (c Hooked) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.Called("Read")
	return n, err
}

// Write implements net.Conn.
func (c Hooked) Write(p []byte) (int, error) {
	c.Called("Write")
	return c.Conn.Write(p)
}

// CloseWrite closes the connection for writing, which Conn must be able to.
func (c Hooked) CloseWrite() error {
	c.Called("CloseWrite")
	return c.Conn.(interface{ CloseWrite() error }).CloseWrite()
}

// SetDeadline implements net.Conn.
func (c Hooked) SetDeadline(t time.Time) error {
	c.Called("SetDeadline")
	return c.Conn.SetDeadline(t)
}

// SetReadDeadline implements net.Conn.
func (c Hooked) SetReadDeadline(t time.Time) error {
	c.Called("SetReadDeadline")
	return c.Conn.SetReadDeadline(t)
}

// SetWriteDeadline implements net.Conn.
func (c Hooked) SetWriteDeadline(t time.Time) error {
	c.Called("SetWriteDeadline")
	return c.Conn.SetWriteDeadline(t)
}

// Close implements net.Conn.
func (c Hooked) Close() error {
	defer c.Called("Close")
	return c.Conn.Close()
}
