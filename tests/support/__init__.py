"""What the layers of tests share: servers, homes, archives, odd job files, the pages of the documentation."""
