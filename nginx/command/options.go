package command

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/culvert-go/culvert/nginx"
)

const usage = `Usage: nginx [-?hvVtTq] [--all] [-s signal] [-p prefix]
             [-e filename] [-c filename] [-g directives]

Options:
  -?,-h         : this help
  -v            : show version and exit
  -V            : show version and configure options then exit
  -t            : test configuration and exit
  --all         : with -t or -T: print every error, not only the first
  -T            : test configuration, dump it and exit
  -q            : suppress non-error messages during configuration testing
  -s signal     : send signal to a master process: stop, quit, reopen, reload
  -p prefix     : set prefix path (default: the current directory)
  -e filename   : set error log file (default: stderr)
  -c filename   : set configuration file (default: conf/nginx.conf with -p, else /etc/nginx/nginx.conf)
  -g directives : set global directives out of configuration file

`

// options are the parsed command line.
type options struct {
	help, version, configure bool
	test, dump, quiet, all   bool
	prefix, file, globals    string
	errorLog, signal         string
	program                  nginx.Options
}

// parseOptions parses the arguments as nginx does (ngx_get_options): flags may be combined, and a
// value may be joined to its flag or follow it.
func parseOptions(args []string) (options, error) {
	var o options
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		if arg == "--all" {
			o.all = true
			continue
		}
		if len(arg) == 0 || arg[0] != '-' {
			return o, fmt.Errorf("invalid option: %q", arg)
		}
		for flags := arg[1:]; flags != ""; {
			flag := flags[0]
			flags = flags[1:]
			if o.set(flag) {
				continue
			}
			value, missing := o.value(flag)
			if value == nil {
				return o, fmt.Errorf("invalid option: \"%c\"", flag)
			}
			if flags == "" && len(args) > 0 {
				flags, args = args[0], args[1:]
			}
			if flags == "" {
				return o, errors.New(missing)
			}
			*value, flags = flags, ""
		}
	}
	if o.all && !o.test {
		return o, errors.New("option \"--all\" requires \"-t\" or \"-T\"")
	}
	if o.signal != "" && !slices.Contains([]string{"stop", "quit", "reopen", "reload"}, o.signal) {
		return o, fmt.Errorf("invalid option: \"-s %s\"", o.signal)
	}
	return o, nil
}

// set sets a flag without a value.
func (o *options) set(flag byte) bool {
	switch flag {
	case '?', 'h':
		o.help = true
	case 'v':
		o.version = true
	case 'V':
		o.configure = true
	case 't':
		o.test = true
	case 'T':
		o.test, o.dump = true, true
	case 'q':
		o.quiet = true
	default:
		return false
	}
	return true
}

// value returns where the value of a flag is stored, and the error text if it is missing.
func (o *options) value(flag byte) (value *string, missing string) {
	switch flag {
	case 'p':
		return &o.prefix, `option "-p" requires directory name`
	case 'e':
		return &o.errorLog, `option "-e" requires file name`
	case 'c':
		return &o.file, `option "-c" requires file name`
	case 'g':
		return &o.globals, `option "-g" requires parameter`
	case 's':
		return &o.signal, `option "-s" requires parameter`
	}
	return nil, ""
}

// configurationFile returns the absolute name of the configuration.
func (o options) configurationFile() string {
	file := o.file
	switch {
	case file != "":
	case o.prefix != "":
		file = "conf/nginx.conf"
	default:
		file = "/etc/nginx/nginx.conf"
	}
	if !filepath.IsAbs(file) {
		file = filepath.Join(o.prefix, file)
	}
	if abs, err := filepath.Abs(file); err == nil {
		file = abs
	}
	return file
}

// load returns the program's options with what the command line says.
func (o options) load(stderr io.Writer) nginx.Options {
	n := o.program
	n.Prefix, n.File, n.Globals, n.ErrorLog, n.Stderr = o.prefix, o.configurationFile(), o.globals, o.errorLog, stderr
	return n
}
