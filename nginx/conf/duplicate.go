package conf

// checkDuplicates refuses a directive that stands twice in one block where nginx accepts only
// one. blocks are the names of the blocks around list.
func (p *parser) checkDuplicates(list []*Directive, blocks []string) error {
	if isData(blocks) {
		return nil
	}
	seen := map[string]bool{}
	for _, d := range list {
		if seen[d.Name] && !p.specs.repeatable(d.Name, blocks) {
			if err := p.fail(d.Errorf("\"%s\" directive is duplicate", d.Name)); err != nil {
				return err
			}
		}
		seen[d.Name] = true
		if err := p.checkDuplicates(d.Block, append(blocks[:len(blocks):len(blocks)], d.Name)); err != nil {
			return err
		}
	}
	return nil
}
