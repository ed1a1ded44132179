package engine

import (
	"os"
	"os/user"
	"strconv"

	"github.com/culvert-go/culvert/nginx/conf"
)

// Account is the user that a process of root becomes (directive user).
type Account struct {
	UID, GID int
	Groups   []int // all groups of the user, and GID
}

// userDirective compiles "user name [group]" (ngx_set_user). It concerns root alone; the group is the user's namesake by default.
func userDirective(c *compiler, _ *level, d *conf.Directive) error {
	if os.Geteuid() != 0 {
		c.deferred = append(c.deferred, func() error {
			c.warn(d, `the "user" directive makes sense only if the master process runs with super-user privileges, ignored`)
			return nil
		})
		return nil
	}
	account, err := user.Lookup(d.Args[0])
	if err != nil {
		return d.Errorf("getpwnam(\"%s\") failed", d.Args[0])
	}
	groupName := d.Args[len(d.Args)-1]
	main, err := user.LookupGroup(groupName)
	if err != nil {
		return d.Errorf("getgrnam(\"%s\") failed", groupName)
	}
	a := &Account{}
	ids, _ := account.GroupIds() // those that can't be read are not had
	for _, id := range append(ids, main.Gid) {
		if n, err := strconv.Atoi(id); err == nil {
			a.Groups = append(a.Groups, n)
		}
	}
	if a.UID, err = strconv.Atoi(account.Uid); err != nil {
		return d.Errorf("getpwnam(\"%s\") failed", d.Args[0])
	}
	if a.GID, err = strconv.Atoi(main.Gid); err != nil {
		return d.Errorf("getgrnam(\"%s\") failed", groupName)
	}
	c.engine.settings.Account = a
	return nil
}
