package com.example.shop;

import org.springframework.data.jpa.repository.JpaRepository;

/** The table. */
interface Purchases extends JpaRepository<Purchase, String> {}
