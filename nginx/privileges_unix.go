//go:build unix

package nginx

import (
	"fmt"
	"os"
	"syscall"

	"github.com/culvert-go/culvert/nginx/conf"
)

// DropPrivileges makes the process, if it is root's, that of the user and the group that directive user names, for good. Call it
// between Listen and Start; command.Serve does. Certificates, keys and passwords have been read by then and log files belong to the
// user from then on, but a Reload reads what the user may read and binds what it may bind: ports below 1024 need
// CAP_NET_BIND_SERVICE or a new start. It does nothing for another user's process, or where the configuration has no user.
func (s *Server) DropPrivileges() error {
	e := s.current.Load().engine
	a := e.Settings().Account
	if a == nil || os.Geteuid() != 0 || a.UID == 0 {
		return nil
	}
	if err := e.OwnLogs(a.UID, a.GID); err != nil {
		return err
	}
	if err := syscall.Setgroups(a.Groups); err != nil {
		return fmt.Errorf("initgroups(%d) failed (%s)", a.GID, conf.Errno(err))
	}
	if err := syscall.Setgid(a.GID); err != nil {
		return fmt.Errorf("setgid(%d) failed (%s)", a.GID, conf.Errno(err))
	}
	if err := syscall.Setuid(a.UID); err != nil {
		return fmt.Errorf("setuid(%d) failed (%s)", a.UID, conf.Errno(err))
	}
	return nil
}
