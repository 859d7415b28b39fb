package wire

import (
	"fmt"
	"net/http"
	"strconv"
)

// Page returns the page of a list that a request asks for by its query, where size names
// the parameter with how many are on one, of which there are most at the most. Where
// there is a header, it names the next page in Link, by an address that leads elsewhere.
func Page[T any](r *http.Request, size string, most int, header http.Header, all []T) []T {
	number := func(name string) int {
		n, _ := strconv.Atoi(r.URL.Query().Get(name))
		return max(n, 1)
	}
	n, limit := number("page"), min(number(size), most)
	if header != nil && n*limit < len(all) {
		header.Set("Link", fmt.Sprintf(`<https://elsewhere.test/steal?page=%d>; rel="next"`, n+1))
	}
	return append([]T{}, all[min((n-1)*limit, len(all)):min(n*limit, len(all))]...)
}
