package schema

// Convert returns v as a value of the column's type.
func (c *Column) Convert(v any) (Value, error) { return c.ConvertLimit(v, 0) }

// ConvertLimit is Convert that also refuses variable-length cells of more than
// maxCell bytes; 0 means no limit.
func (c *Column) ConvertLimit(v any, maxCell int) (Value, error) { panic("to be written") }

// Parse parses a literal as the column's type.
func (c *Column) Parse(text string) (Value, error) { panic("to be written") }

// Format appends the value as text.
func (c *Column) Format(dst []byte, v Value) []byte { panic("to be written") }

// Go returns the value as a Go value: nil, bool, int64, float32, float64, string,
// []byte, time.Time, and a decimal as string.
func (c *Column) Go(v Value) any { panic("to be written") }

// ParseColumns parses a list of column definitions.
func ParseColumns(text string) ([]Column, error) { panic("to be written") }

// String returns the column's definition in the grammar of [ParseColumns].
func (c *Column) String() string { panic("to be written") }
