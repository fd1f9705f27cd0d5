"""The paper's post-notification application (section 2.2, figure 4), as real services on replicated stores."""
