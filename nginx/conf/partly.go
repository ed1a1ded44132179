package conf

// notFollowed returns what of an implemented directive inside blocks is not followed; "" if all is.
func (s Specs) notFollowed(d *Directive, blocks []string) string {
	if spec, _ := s.of(d.Name, blocks); spec.NotFollowed != nil {
		return spec.NotFollowed(d)
	}
	return ""
}
