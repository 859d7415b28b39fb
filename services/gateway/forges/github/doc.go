// Package github is the back end for GitHub and its Enterprise Server, by their REST API of version 2022-11-28.
package github
