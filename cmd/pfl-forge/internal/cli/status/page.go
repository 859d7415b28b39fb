package status

import (
	"fmt"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
)

// terminalRows is how many intents a terminal shows at once, unless --limit says otherwise.
const terminalRows = 40

// openFirst moves the intents that are open or failed, with their parents and children,
// before those that are finished. Otherwise it keeps the order. A family is an intent of
// depth 0 with everything below it.
// depths are those of render.Tree, one for each intent. The lists that were given are not altered.
func openFirst(all []forge.Summary, depths []int) ([]forge.Summary, []int) {
	var open, over []int
	for first := 0; first < len(all); {
		end, busy := first, false
		for ; end < len(all) && (end == first || depths[end] > 0); end++ {
			busy = busy || !all[end].Status.Ended() || all[end].Status.Failed()
		}
		for i := first; i < end; i++ {
			if busy {
				open = append(open, i)
			} else {
				over = append(over, i)
			}
		}
		first = end
	}
	list, deep := make([]forge.Summary, 0, len(all)), make([]int, 0, len(all))
	for _, i := range append(open, over...) {
		list, deep = append(list, all[i]), append(deep, depths[i])
	}
	return list, deep
}

// window returns the indices of the first intent of a page and of the one after its last.
// A limit of 0 stands for one page with everything. The page after the last one is empty.
func window(total, limit, page int) (first, end int) {
	if limit == 0 {
		return 0, total
	}
	first = min((page-1)*limit, total)
	return first, min(first+limit, total)
}

// limit returns how many intents a page has; 0 if everything is on one.
// Only a terminal is given pages unasked: what is piped has to be whole.
func (f *flags) limitOf(a *kit.App) int {
	if f.limit < 0 && kit.Width(a.Out) > 0 {
		return terminalRows
	}
	return max(f.limit, 0)
}

// position says which part of a list a page is, and how to see the next one; empty if it
// is all of it.
// first and end are those of window.
func (f *flags) position(first, end, total int) string {
	if end-first == total {
		return ""
	}
	text := fmt.Sprintf("%d to %d of %d", first+1, end, total)
	if first == end {
		text = fmt.Sprintf("no page %d: there are %d intents", f.page, total)
	}
	if end < total {
		text += fmt.Sprintf("; --page %d shows more, --limit 0 shows all", f.page+1)
	}
	return text
}
