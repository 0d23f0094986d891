package environ

// Names are the variables that the text of a .env file sets, in the order in
// which they first stand there.
func Names(text string) []string {
	names := []string{}
	for _, p := range parseDotenv(text) {
		names = append(names, p.name)
	}
	return names
}
