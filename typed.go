package minikudu

import (
	"context"
	"fmt"
	"iter"
	"reflect"

	"github.com/minikudu/minikudu/schema"
)

// structPlan ties the fields of a struct type to the columns of a table.
type structPlan struct {
	fields  []schema.Field
	columns []int // schema column of each field
}

// planStruct finds the column of every field of T.
func planStruct[T any](t *Table) (*structPlan, error) {
	fields, err := schema.FieldsOf(reflect.TypeFor[T]())
	if err != nil {
		return nil, err
	}
	p := &structPlan{fields: fields, columns: make([]int, len(fields))}
	for k, f := range fields {
		if p.columns[k] = t.schema.Find(f.Name); p.columns[k] < 0 {
			return nil, fmt.Errorf("field of %v: %w", reflect.TypeFor[T](), t.columnError(f.Name))
		}
	}
	return p, nil
}

// InsertStructs adds one row for each struct. A field stands for the column named by
// its tag `minikudu:"name"`, or by its name; columns without a field take their
// defaults, or null. A nil pointer or nil []byte is null; a field of the generated id
// is not read. An error means that the type does not fit the table, and that nothing
// was added.
func InsertStructs[T any](b *WriteBatch, t *Table, rows ...T) error {
	return addStructs(b, t, OpInsert, rows)
}

// UpsertStructs is InsertStructs, but where the key is live already the columns that
// have a field are set. A table with a generated id needs a field for it.
func UpsertStructs[T any](b *WriteBatch, t *Table, rows ...T) error {
	return addStructs(b, t, OpUpsert, rows)
}

func addStructs[T any](b *WriteBatch, t *Table, op Op, rows []T) error {
	p, err := planStruct[T](t)
	if err != nil {
		return err
	}
	at := make(map[int]int, len(p.fields)) // column to field
	for k, i := range p.columns {
		if i != t.schema.AutoIncrement() || op > OpInsertIgnore {
			at[i] = k
		}
	}
	for i := range rows {
		row := reflect.ValueOf(&rows[i]).Elem()
		b.row(t, op, func(col int) (any, bool) {
			k, ok := at[col]
			if !ok {
				return nil, false
			}
			return row.FieldByIndex(p.fields[k].Index).Interface(), true
		})
	}
	return nil
}

// GetAs returns the row with the given key as a struct; see [InsertStructs] for the
// fields. A missing row is ErrNotFound.
func GetAs[T any](ctx context.Context, t *Table, key ...any) (T, error) {
	var out T
	p, err := planStruct[T](t)
	if err != nil {
		return out, err
	}
	r, err := t.Get(ctx, key...)
	if err != nil {
		return out, err
	}
	dst := reflect.ValueOf(&out).Elem()
	for k, i := range p.columns {
		if err := p.fields[k].Assign(dst, t.schema.Column(i), r.cells[i]); err != nil {
			return out, err
		}
	}
	return out, nil
}

// ScanAs reads rows as structs; q.Columns is ignored, the fields of T decide. An
// error ends the loop after it was delivered.
func ScanAs[T any](ctx context.Context, t *Table, q Query) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		p, err := planStruct[T](t)
		if err != nil {
			yield(none, err)
			return
		}
		q.Columns = make([]string, len(p.fields))
		for k, f := range p.fields {
			q.Columns[k] = f.Name
		}
		for b, err := range t.Scan(ctx, q) {
			if err != nil {
				yield(none, err)
				return
			}
			for i := range b.Len() {
				row, err := structRow[T](t, p, b, i)
				if !yield(row, err) || err != nil {
					return
				}
			}
		}
	}
}

func structRow[T any](t *Table, p *structPlan, b *Batch, i int) (T, error) {
	var out T
	dst := reflect.ValueOf(&out).Elem()
	for k, col := range p.columns {
		if err := p.fields[k].Assign(dst, t.schema.Column(col), b.Column(k).Value(i)); err != nil {
			return out, err
		}
	}
	return out, nil
}
