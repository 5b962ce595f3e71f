package encoding

import "sync"

// A Habit is how the pages of a PAGED column were encoded last. Encoders of a column that
// share one take it up where the one before left off, instead of trying all ways for the
// first page. They may be used at the same time. The zero Habit is ready.
type Habit struct {
	mu sync.Mutex
	of habit
}

// habit is how pages are encoded, until that is looked into again.
type habit struct {
	chosen way
	codecs codecs  // tried for a way that has one
	rate   float64 // bytes a value when the way was chosen; 0: it was not
	age    int     // plain bytes since
	limit  int     // plain bytes of a page
}

// get returns the habit; none is without a rate.
func (h *Habit) get() habit {
	if h == nil {
		return habit{}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.of
}

// put takes the habit of an encoder.
func (h *Habit) put(of habit) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.of = of
}
