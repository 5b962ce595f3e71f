package predicate

// String returns the comparison in SQL syntax.
func (c *Compare) String() string { panic("to be written") }

// String returns the conjunction or disjunction in SQL syntax.
func (l *Logic) String() string { panic("to be written") }

// String returns the negation in SQL syntax.
func (n *Negation) String() string { panic("to be written") }
