package conf

// checkDuplicates refuses a directive that stands twice in one block where nginx accepts only
// one. blocks are the names of the blocks around list.
func (s Specs) checkDuplicates(list []*Directive, blocks []string) error {
	if isData(blocks) {
		return nil
	}
	seen := map[string]bool{}
	for _, d := range list {
		if seen[d.Name] && !s.repeatable(d.Name) {
			return d.Errorf("\"%s\" directive is duplicate", d.Name)
		}
		seen[d.Name] = true
		if err := s.checkDuplicates(d.Block, append(blocks[:len(blocks):len(blocks)], d.Name)); err != nil {
			return err
		}
	}
	return nil
}
