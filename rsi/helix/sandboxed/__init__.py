"""Scripts that run inside the sandbox; the product reads them as files and never imports them."""
