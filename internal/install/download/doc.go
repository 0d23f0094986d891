// Package download is fetching a file by its address, through dropped
// connections and nothing but silence for a time-out.
//
// It is no registry client, and knows neither packages nor what is in the file.
package download
