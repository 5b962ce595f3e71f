package predicate

import (
	"encoding/binary"

	"github.com/minikudu/minikudu/schema"
)

// appendKeyCell encodes one key cell so that bytes sort as values do.
func appendKeyCell(dst []byte, v schema.Value, last bool) []byte {
	switch v.Kind() {
	case schema.KindInt8:
		return append(dst, byte(v.Int())^0x80)
	case schema.KindInt16:
		return binary.BigEndian.AppendUint16(dst, uint16(v.Int())^1<<15)
	case schema.KindInt32:
		return binary.BigEndian.AppendUint32(dst, uint32(v.Int())^1<<31)
	case schema.KindInt64:
		return binary.BigEndian.AppendUint64(dst, uint64(v.Int())^1<<63)
	case schema.KindInt128:
		dst = binary.BigEndian.AppendUint64(dst, uint64(v.Int128().Hi)^1<<63)
		return binary.BigEndian.AppendUint64(dst, v.Int128().Lo)
	}
	if last {
		return append(dst, v.Str()...)
	}
	for i := 0; i < len(v.Str()); i++ {
		if dst = append(dst, v.Str()[i]); v.Str()[i] == 0 {
			dst = append(dst, 1)
		}
	}
	return append(dst, 0, 0)
}
