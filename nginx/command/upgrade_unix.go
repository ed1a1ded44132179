//go:build unix

package command

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/culvert-go/culvert/nginx"
)

// upgrade implements USR2: it starts the program anew, from the file that has its name now, and gives it
// the sockets. Both serve from then on, until one of them receives QUIT. The pid file becomes NAME.oldbin, and is renamed again
// if the new process ends first.
func upgrade(p *process, _ <-chan os.Signal) {
	if p.upgraded || p.before != 0 && os.Getppid() == p.before {
		p.server.Logger().Error("the changing binary signal is ignored: you should shutdown or terminate before either old or new binary's process")
		return
	}
	if err := p.startSuccessor(); err != nil {
		emerg(p.server, fmt.Errorf("could not start the new binary: %w", err))
	}
}

func (p *process) startSuccessor() error {
	files, keep, err := p.server.HandOver()
	if err != nil {
		return err
	}
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	pidFile := p.server.PIDFile()
	if pidFile != "" {
		if err := os.Rename(pidFile, pidFile+oldSuffix); err != nil {
			keep()
			return fmt.Errorf("rename() %s to %s failed: %w", pidFile, pidFile+oldSuffix, err)
		}
	}
	cmd := p.successor(files)
	if err := cmd.Start(); err != nil {
		p.restore(pidFile, keep)
		return err
	}
	p.upgraded = true
	p.server.Logger().Log(context.Background(), nginx.LevelNotice, fmt.Sprintf("start new binary process %d", cmd.Process.Pid))
	go func() {
		_ = cmd.Wait() // it may be long after the end of this process's service
		p.mu.Lock()
		defer p.mu.Unlock()
		if !p.ended {
			p.restore(pidFile, keep)
		}
	}()
	return nil
}

// successor returns the command of the new process.
func (p *process) successor(files []*os.File) *exec.Cmd {
	cmd := exec.Command(os.Args[0], os.Args[1:]...) // the file of this name, which is another one than ours
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	var numbers strings.Builder
	for i := range files {
		fmt.Fprintf(&numbers, "%d;", firstInherited+i)
	}
	cmd.ExtraFiles = files
	cmd.Env = append(os.Environ(), inheritedEnv+"="+numbers.String())
	return cmd
}

// restore makes this process the only one again.
func (p *process) restore(pidFile string, keep func()) {
	p.upgraded = false
	keep()
	if pidFile != "" {
		_ = os.Rename(pidFile+oldSuffix, pidFile) // what the failed process has written is replaced
	}
}
