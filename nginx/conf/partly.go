package conf

import "os"

// notFollowed returns what of an implemented directive inside blocks is not followed; "" if all is.
func (s Specs) notFollowed(d *Directive, blocks []string) string {
	if spec, _ := s.of(d.Name, blocks); spec.NotFollowed != nil {
		return spec.NotFollowed(d)
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
