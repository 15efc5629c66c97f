package window

import "slices"

// Shares of the budget for a conversation that grows. Compaction works in steps and not message by message, because
// every change of the beginning of a request voids what the vendor has cached of it: once it has begun, nothing of the
// beginning changes until the conversation has grown by Step.
const (
	Soft     = 0.50 // above it, old output of tools becomes references …
	lowShare = 0.35 // … until everything together is below this share, or there is no more to shorten
	// by how much a conversation has to grow before more of its output is shortened, unless it reaches Limit
	Step = 0.10
	// floorShare is what is left when the oldest turns are dropped because there is no summary of them.
	floorShare = 0.45
	// outputShare is the most that one output of a tool takes: more of it is cut out of its middle, in
	// every request alike. A request that contains more exceeds the size below which nothing is shortened,
	// so it is never sent whole first.
	outputShare = Soft - 1.0/16
)

// Piece is a message of a conversation, as Compact sees it.
type Piece struct {
	Size  int // tokens
	Short int // tokens as a reference; 0 = it cannot be shortened
	Least int // tokens with as much as possible cut out of its middle; 0 = it cannot be cut
	Group int // index of its turn
	Batch int // how many times tools were requested up to it
}

// Plan says what becomes of a conversation in a request.
type Plan struct {
	Short   []bool // by piece: it becomes a reference; nil = none
	Cut     []int  // by piece: the tokens that it is cut to, 0 = it stays whole; nil = nothing is cut
	Dropped int    // how many turns are left out, from the first one
	Total   int    // tokens of the whole request
}

// Compact decides what a request contains of a conversation, of which fixed tokens besides always belong to it. Output
// of the newest batch of tools is not shortened to references: it stays whole, or is cut to what fits if the request
// would otherwise exceed Limit. Only if not even the ends of all of it fit, it becomes references too. The last turn is
// never dropped. With drop, the oldest turns are dropped once everything together exceeds High.
//
// The pieces are taken one by one, as the conversation grew: what was decided before the last one is decided again in
// the same way, so requests of a growing conversation begin alike until a threshold is passed. A budget of 0 means no
// limit.
func Compact(pieces []Piece, fixed, budget int, drop bool) Plan {
	if budget <= 0 {
		total := fixed
		for i := range pieces {
			total += pieces[i].Size
		}
		return Plan{Total: total}
	}
	c := compaction{pieces: pieces, short: make([]bool, len(pieces)), budget: budget, fixed: roundFixed(fixed, budget)}
	for i := range pieces {
		if most := max(pieces[i].Least, shareOf(budget, outputShare)); pieces[i].Least > 0 && pieces[i].Size > most {
			c.cutTo(i, most)
		}
	}
	pieces = c.pieces
	c.total = c.fixed
	for i := range pieces {
		c.total += pieces[i].Size
		if c.total > shareOf(budget, Soft) && (c.total > c.next || c.total > shareOf(budget, Limit)) {
			c.shortenOutput(i+1, pieces[i].Batch, shareOf(budget, lowShare))
			c.next = c.total + shareOf(budget, Step)
		}
		if drop && c.total > shareOf(budget, High) && c.dropped < pieces[i].Group {
			c.dropTurns(pieces[i].Group)
			c.next = c.total + shareOf(budget, Step)
		}
	}
	total := c.total - c.fixed + fixed
	if Over(total, budget) {
		c.total = total
		c.shortenOutput(len(pieces), pieces[len(pieces)-1].Batch, shareOf(budget, Limit))
		c.cutNewest(shareOf(budget, Limit))
		c.shortenOutput(len(pieces), -1, shareOf(budget, Limit))
		total = c.total
	}
	return Plan{Short: c.short, Cut: c.cut, Dropped: c.dropped, Total: total}
}

// cutTo cuts a piece to a number of tokens, in a copy of the caller's list.
func (c *compaction) cutTo(i, tokens int) {
	if c.cut == nil {
		c.pieces, c.cut = slices.Clone(c.pieces), make([]int, len(c.pieces))
	}
	c.total -= c.pieces[i].Size - tokens
	c.pieces[i].Size, c.cut[i] = tokens, tokens
}

// cutNewest cuts the outputs of the newest batch so that the total is small enough. The largest ones are cut, all to
// the same size. It does nothing if their ends alone would be too much.
func (c *compaction) cutNewest(enough int) {
	var list []int
	batch, room := c.pieces[len(c.pieces)-1].Batch, enough-c.total
	for i := c.first; i < len(c.pieces); i++ {
		if p := &c.pieces[i]; p.Batch == batch && p.Least > 0 && !c.short[i] {
			list, room = append(list, i), room+p.Size
		}
	}
	if c.total <= enough {
		return
	}
	slices.SortStableFunc(list, func(a, b int) int { return c.pieces[a].Size - c.pieces[b].Size })
	sizes := make([]int, len(list))
	for n, i := range list {
		sizes[n] = min(c.pieces[i].Size, room/(len(list)-n))
		if sizes[n] < min(c.pieces[i].Size, c.pieces[i].Least) {
			return
		}
		room -= sizes[n]
	}
	for n, i := range list {
		if sizes[n] < c.pieces[i].Size {
			c.cutTo(i, sizes[n])
		}
	}
}

// shareOf is a part of the budget.
func shareOf(budget int, of float64) int { return int(float64(budget) * of) }

// roundFixed rounds the fixed part up to sixteenths of the budget, so that a tool more or less does not move the points
// at which a conversation was compacted.
func roundFixed(fixed, budget int) int {
	unit := max(1, budget/16)
	return (fixed + unit - 1) / unit * unit
}

// compaction is the state of Compact.
type compaction struct {
	pieces         []Piece
	short          []bool
	cut            []int
	budget, fixed  int
	total, next    int
	first, dropped int // the first piece and group that are left
	at             int // pieces before it are shortened, if they can be
}

// shortenOutput turns output into references, from the first piece up to number end, until the total is
// small enough. batch is left whole.
func (c *compaction) shortenOutput(end, batch, enough int) {
	for c.at = max(c.at, c.first); c.at < end && c.total > enough; c.at++ {
		p := &c.pieces[c.at]
		if p.Batch == batch {
			return
		}
		if p.Short > 0 && !c.short[c.at] {
			c.short[c.at] = true
			c.total -= p.Size - p.Short
		}
	}
}

// dropTurns leaves out the first turns before group current until the rest is at most Floor of the budget.
func (c *compaction) dropTurns(current int) {
	for c.dropped < current && c.total > shareOf(c.budget, floorShare) {
		for c.first < len(c.pieces) && c.pieces[c.first].Group <= c.dropped {
			if c.short[c.first] {
				c.total -= c.pieces[c.first].Short
			} else {
				c.total -= c.pieces[c.first].Size
			}
			c.first++
		}
		c.dropped++
	}
}
