package certs

import "os"

// SetStat has c look at files by stat.
func (c *Cache) SetStat(stat func(name string) (os.FileInfo, error)) { c.stat = stat }
