package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// snapshot is what a process and its children use at a moment.
type snapshot struct {
	cpu   time.Duration // in steps of 10 ms
	rss   int64         // bytes
	files int           // descriptors
}

// usedSoFar reads it from /proc.
func (p *process) usedSoFar() (s snapshot, err error) {
	for _, pid := range family(p.cmd.Process.Pid) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return s, err
		}
		_, after, _ := strings.Cut(string(stat), ") ")
		fields := strings.Fields(after) // from the third field of proc(5) on
		user, _ := strconv.Atoi(fields[11])
		system, _ := strconv.Atoi(fields[12])
		pages, _ := strconv.ParseInt(fields[21], 10, 64)
		files, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		s.cpu += time.Duration(user+system) * 10 * time.Millisecond
		s.rss += pages * int64(os.Getpagesize())
		s.files += len(files)
	}
	return s, nil
}

// family is a process and its children.
func family(parent int) []int {
	all := []int{parent}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range stats {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended meanwhile
		}
		_, after, _ := strings.Cut(string(stat), ") ")
		if fields := strings.Fields(after); len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			all = append(all, pid)
		}
	}
	return all
}
