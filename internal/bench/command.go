package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
)

// rest is the command after which a process of this program holds no garbage. Go's
// runtime does that by itself when nothing was allocated for two minutes.
const rest = "rest"

// obey executes the commands that are lines on standard input, until its end.
func obey(commands map[string]func() string) {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		switch command := commands[lines.Text()]; {
		case command != nil:
			fmt.Println(command())
		case lines.Text() == rest:
			debug.FreeOSMemory()
			fmt.Println(rest)
		}
	}
}

// call sends the process a command and returns its reply.
func (p *process) call(command string) (string, error) {
	if _, err := io.WriteString(p.commands, command+"\n"); err != nil {
		return "", err
	}
	line, err := p.report.ReadString('\n')
	return strings.TrimSpace(line), err
}

// usedWhenIdle is usedSoFar after a process of this program has given back what it does not
// need.
func (p *process) usedWhenIdle() (snapshot, error) {
	if p.commands != nil {
		if _, err := p.call(rest); err != nil {
			return snapshot{}, err
		}
	}
	return p.usedSoFar()
}
