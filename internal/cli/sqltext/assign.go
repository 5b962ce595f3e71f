package sqltext

import "strings"

// ParseAssignment parses an argument such as `a=1`, `Cost Total $=12.50`, `"a=b"=x`,
// `v=null` or `v='it”s'`. A bare name runs to the first equals sign; one that holds
// an equals sign or a quote is double-quoted. Bare text is the value as it stands, but
// for null, which is nil; single quotes make text of anything.
func ParseAssignment(in string) (Assignment, error) {
	p := &parser{in: in}
	a := Assignment{Column: p.assignedName()}
	if p.err != nil {
		return Assignment{}, p.err
	}
	value := in[p.at:]
	switch {
	case strings.EqualFold(value, "null"):
	case strings.HasPrefix(value, "'"):
		p.quoted(text, p.at)
		if p.err == nil && p.at < len(in) {
			p.failAt(p.at, "expected the end after the quoted value")
		}
		a.Value = p.tok.text
	default:
		a.Value = value
	}
	if p.err != nil {
		return Assignment{}, p.err
	}
	return a, nil
}

// assignedName reads a name and the equals sign after it.
func (p *parser) assignedName() string {
	var column string
	if strings.HasPrefix(p.in, `"`) {
		p.quoted(name, 0)
		column = p.tok.text
	} else {
		column, _, _ = strings.Cut(p.in, "=")
		p.at = len(column)
		if at := strings.IndexByte(column, '"'); at >= 0 {
			p.failAt(at, "a name that holds a quote is written in double quotes")
		}
		column = strings.Trim(column, space)
	}
	switch {
	case p.err != nil:
	case p.at == len(p.in) || p.in[p.at] != '=':
		p.failAt(p.at, "expected column=value")
	case column == "":
		p.failAt(0, "expected a name before the equals sign")
	default:
		p.at++
	}
	return column
}
