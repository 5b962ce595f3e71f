package compaction

// heap is a binary heap of cursors by key (Williams, "Algorithm 232", 1964).
type heap []*cursor

func (h heap) init() {
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

// down restores the order after the key of cursor i has grown.
func (h heap) down(i int) {
	for {
		least := i
		for k := 2*i + 1; k <= 2*i+2 && k < len(h); k++ {
			if h[k].before(h[least]) {
				least = k
			}
		}
		if least == i {
			return
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}

// push adds a cursor.
func (h *heap) push(c *cursor) {
	*h = append(*h, c)
	for i := len(*h) - 1; i > 0 && (*h)[i].before((*h)[(i-1)/2]); i = (i - 1) / 2 {
		(*h)[i], (*h)[(i-1)/2] = (*h)[(i-1)/2], (*h)[i]
	}
}

// pop removes the cursor of the least key and returns it.
func (h *heap) pop() *cursor {
	old := *h
	least, last := old[0], len(old)-1
	old[0] = old[last]
	*h = old[:last]
	h.down(0)
	return least
}
