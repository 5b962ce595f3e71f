// Package cache keeps pages in memory within a byte budget.
//
// The owner of a page holds a [Slot] for it; a hit is one atomic load through the
// slot and needs no hash table and no lock. The cache decides which slots are
// filled. It follows S3-FIFO (Yang, Zhang, Qiu, Yue, Vigfusson: "FIFO queues are
// all you need for cache eviction", SOSP 2023): new pages enter a small queue that
// takes a tenth of the budget, those used again move to the main queue, and a page
// that comes back soon after it was dropped goes to the main queue at once, so one
// long scan does not push out what is used often. A slot itself remembers when its
// page was dropped, which stands for the paper's ghost queue.
//
// A page may have several forms, of different sizes, of which a slot holds one;
// [Cache.Replace] puts another in its place.
//
// Pages belong to the garbage collector: one that has been dropped stays intact for
// whoever still uses it, and its memory is never recycled.
//
// All methods may be called concurrently.
package cache
