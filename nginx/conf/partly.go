package conf

import "os"

// notFollowed returns what of an implemented directive is not followed; "" if all is.
func (s Specs) notFollowed(d *Directive) string {
	if f := s[d.Name].NotFollowed; f != nil {
		return f(d)
	}
	return ""
}

// userClass returns the class of "user", which matters if root starts the process.
func userClass(d *Directive) (Class, string) {
	if os.Geteuid() == 0 && len(d.Args) > 0 && d.Args[0] != "root" {
		return Passed, "culvert keeps running as root and reads every file: " + noOps["user"]
	}
	return NoOp, noOps["user"]
}
